"""What `kgroup mcp` serves to agents: the commands that only read, their arguments, bounded answers.

Below it are the commands, their schemas and the output.
"""
