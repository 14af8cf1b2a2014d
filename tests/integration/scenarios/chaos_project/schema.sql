CREATE TABLE customer (
    customer_id int PRIMARY KEY, name varchar(40) NOT NULL, email varchar(60) UNIQUE,
    state varchar(10) NOT NULL CHECK (state IN ('new', 'active', 'gone')), born date);
CREATE TABLE orders (
    order_id int PRIMARY KEY, customer_id int NOT NULL, placed timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, note varchar(80),
    FOREIGN KEY (customer_id) REFERENCES customer (customer_id));
CREATE TABLE order_line (
    order_id int NOT NULL, line_no int NOT NULL, article varchar(30) NOT NULL, quantity int NOT NULL CHECK (quantity > 0),
    price decimal(10,2) NOT NULL, PRIMARY KEY (order_id, line_no),
    FOREIGN KEY (order_id) REFERENCES orders (order_id));
