"""The YAML language of scenarios: the start of a bank, scripted rules, and stories (CONTRACT 10)."""
