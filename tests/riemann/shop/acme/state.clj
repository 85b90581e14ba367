(ns acme.state
  "States of metrics, by the table of thresholds."
  (:require [riemann.streams :refer :all]
            [riemann.common :refer [match]]
            [riemann.test :refer [tests deftest]]
            [clojure.test :refer [is are]]
            [acme.settings :refer [thresholds]]))

(defn threshold-of
  "The first row of the table that is for an event."
  [{:keys [service role]}]
  (first (filter (fn [row]
                   (and (match (:service row) service)
                        (or (nil? (:role row)) (= role (:role row)))))
           thresholds)))

(defn state-of
  "ok, warning or critical; nil without a threshold or a metric."
  [{:keys [metric] :as event}]
  (when-let [{:keys [warning critical low?]} (threshold-of event)]
    (when metric
      (let [beyond? (if low? <= >=)]
        (cond
          (beyond? metric critical) "critical"
          (beyond? metric warning)  "warning"
          :else                     "ok")))))

(defn with-state
  "Passes events with the state of their metric. Those that have none keep the one they have; expired ones are as they were."
  [& children]
  (apply smap
    (fn [event]
      (if (= "expired" (:state event))
        event
        (if-let [state (state-of event)]
          (assoc event :state state)
          event)))
    children))

(tests
  (deftest states
    (are [state service metric role] (= state (acme.state/state-of {:service service :metric metric :role role}))
      "ok"       "cpu"                        0.79  nil
      "warning"  "cpu"                        0.8   "web"
      "critical" "cpu"                        1     nil
      "critical" "entropy"                    50    nil
      "warning"  "entropy"                    51    nil
      "ok"       "entropy"                    1000  nil
      "warning"  "disk /var/lib/postgresql/9" 0.75  "db"
      "ok"       "disk /var/lib/postgresql/9" 0.75  "web"
      "ok"       "disk /mnt/backup"           0.85  nil
      "warning"  "disk /"                     0.85  nil
      "critical" "queue mail consumers"       0     "queue"
      "warning"  "queue mail consumers"       1     "queue"
      nil        "queue mail consumers"       1     "web"
      "warning"  "pg transactions age"        100000000 "db"
      nil        "unheard of"                 1     nil
      nil        "cpu"                        nil   nil))

  (deftest every-row-makes-sense
    (doseq [{:keys [service warning critical low?]} acme.settings/thresholds]
      (is (if low? (> warning critical) (< warning critical)) (str service)))))
