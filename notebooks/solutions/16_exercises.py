"""Solutions of chapter 16."""


def newly(report):
    """Return who gains which document by a report."""
    return {step.doc_id: step.gains for step in report.steps if step.gains}


my_rules = """
version: 1
default: []
rules:
  - match: "policies/**"
    allow: ["*"]
  - match: "policies/expense.md"
    allow: ["group:finance"]
"""

three = ["revision changed", "revision changed", "access withdrawn"]
