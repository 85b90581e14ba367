; Lines of Graphite: the name is the service, its tags are fields.
(graphite-server {:parser-fn (fn [e] (assoc e :description "a line"))})

(def alerts (staunch/output "alerts"))

(streams
  (where (> metric 0.9)
    (by :host
      (changed-state {:init "ok"}
        alerts))
    (where (nil? state)
      (with :state "high" alerts))))
