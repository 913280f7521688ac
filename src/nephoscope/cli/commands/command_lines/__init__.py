"""`nephoscope bench --command`: options, plan, text and export for command lines of the user."""
