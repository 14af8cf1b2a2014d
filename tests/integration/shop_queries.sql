-- Some of shop_project's tables again, for runs of a mapping that is nothing but SQL.

-- target: label
-- key: category_id
SELECT category_id, name FROM category;

-- target: order_summary
-- key: order_id
-- grain: orders.order_id
SELECT o.order_id, first_value(c.name) OVER (PARTITION BY o.order_id ORDER BY c.customer_id) AS customer_name,
    coalesce(s.line_count, 0) AS line_count, coalesce(s.total, 0) AS total, s.products
FROM orders o
JOIN customer c ON c.customer_id = o.customer_id
LEFT JOIN (
    SELECT l.order_id, count(*) AS line_count, sum(l.quantity * p.price) AS total,
        array_join(array_sort(collect_list(p.name)), ',') AS products
    FROM order_line l JOIN product p ON p.product_id = l.product_id
    GROUP BY l.order_id
) s ON s.order_id = o.order_id;

-- target: referral
-- key: customer_id
-- grain: customer.customer_id
-- role: referrer = customer
-- role: referred = customer
-- link: customer.referrer_id = referrer.customer_id
-- link: referred.referrer_id = customer.customer_id
SELECT c.customer_id, r.name AS referrer,
    (SELECT count(*) FROM customer b WHERE b.referrer_id = c.customer_id) AS referred
FROM customer c LEFT JOIN customer r ON r.customer_id = c.referrer_id;

-- target: band
-- key: product_id
-- grain: product.product_id
-- value: product.band = floor(price / 10)
-- role: alike = product
-- link: alike.band = product.band
SELECT p.product_id, count(*) AS products
FROM product p JOIN product q ON floor(q.price / 10) = floor(p.price / 10)
GROUP BY p.product_id;
