"""Order entry: new orders, payments and deliveries on a small schema with natural keys of several columns.

The transactions follow TPC-C (revision 5.11, clauses 2.4, 2.5 and 2.7), without its sizes and timing.
"""
