"""Fitted quantifiers as folders that anyone can read and that run no code: JSON, safetensors, skops, a model card."""
