"""What one invocation was told and where it leads: options, settings with their origins, contexts, the
cluster.

`invocation.Env` is handed to every command. `settings` resolves flags, -X, environment, contexts and files;
`session` opens the cluster they name and closes it; `zookeeper` opens an ensemble. Nothing here prints data.
"""
