// mode: write
// params: was_model: str, was_phase: str, model: str, dimensions: int, phase: str, marked_to: str
// returns: model: str, dimensions: int, phase: str, marked_to: str
// scope: exempt: one node of the installation, no tenant's data
// Another model, or another phase of embedding with it, unless another replica has changed it meanwhile.
MATCH (s:EmbeddingState {id: 'lastro'})
SET s.changes = coalesce(s.changes, 0) + 1
WITH s
WHERE s.model = $was_model AND s.phase = $was_phase
SET s.model = $model, s.dimensions = $dimensions, s.phase = $phase, s.marked_to = $marked_to
RETURN s.model AS model, s.dimensions AS dimensions, s.phase AS phase, s.marked_to AS marked_to
