"""Models that turn text into vectors. Each is loaded only when it is needed; see ``adapters.embedders.base.Embedder``."""
