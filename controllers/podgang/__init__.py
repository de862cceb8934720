"""PodGang controller: pod references, topology translation, metadata, and the gang's phase and conditions."""
