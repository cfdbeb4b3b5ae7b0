// mode: read
// params:
// returns: model: str, dimensions: int, phase: str, marked_to: str
// scope: exempt: one node of the installation, no tenant's data
// Which model the graph's embeddings are of, and whether all units have theirs.
MATCH (s:EmbeddingState {id: 'lastro'})
RETURN s.model AS model, s.dimensions AS dimensions, s.phase AS phase, s.marked_to AS marked_to
