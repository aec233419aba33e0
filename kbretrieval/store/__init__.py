"""SQLite and nothing else: schema, transactions, contract, rows in and out. No other room writes SQL."""
