// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// What units of a tenant name as their attachments, one node for each digest.
CREATE CONSTRAINT attachment_digest IF NOT EXISTS FOR (a:Attachment) REQUIRE (a.tenant_id, a.sha256) IS UNIQUE
