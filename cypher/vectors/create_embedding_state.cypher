// mode: write
// params: model: str, dimensions: int, phase: str
// returns: model: str, dimensions: int, phase: str, marked_to: str
// scope: exempt: one node of the installation, no tenant's data
// The first start with an embedder makes the state; every later one finds it, of whatever model.
MERGE (s:EmbeddingState {id: 'lastro'})
ON CREATE SET s.model = $model, s.dimensions = $dimensions, s.phase = $phase, s.marked_to = ''
RETURN s.model AS model, s.dimensions AS dimensions, s.phase AS phase, s.marked_to AS marked_to
