(defn loud [limit]
  (where (> metric limit)
    (with :state "loud" (index))))
