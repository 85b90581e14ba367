; Aggregates of StatsD: an event for each series of a window.
(def alerts (staunch/output "alerts"))
(def carbon (graphite {:host "10.0.0.9"}))

(let [index (index)]
  (streams
    index
    (where (and (service "stats_counts.hits") (> metric 2))
      (with :state "critical" alerts))
    ; Tags of a name are fields.
    (where (and (= (:dc event) "eu") (service #"^stats_counts") (> metric 0))
      (with :service "in eu" alerts))
    ; State between the windows.
    (where (service "stats.gauges.queue")
      (ddt (with :service "queue grows by" carbon)))))
