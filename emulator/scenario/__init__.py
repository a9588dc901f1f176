"""The YAML language of scenarios: what a bank starts from, scripted rules, and stories that play (CONTRACT 10)."""
