"""What one invocation was given and which cluster it uses: options, settings with their origins, contexts.

`invocation.Env` is passed to every command. `settings` resolves flags, -X, environment, contexts and files;
`session` opens the cluster they name and closes it; `zookeeper` opens an ensemble. Nothing here prints data.
"""
