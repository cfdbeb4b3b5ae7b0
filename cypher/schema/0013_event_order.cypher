// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// The events of a tenant in the order of their time, read backwards page by page.
CREATE INDEX event_order IF NOT EXISTS FOR (e:Event) ON (e.event_order)
