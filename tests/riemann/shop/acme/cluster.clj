(ns acme.cluster
  "Many hosts as one."
  (:require [riemann.streams :refer :all]
            [riemann.folds :as folds]
            [riemann.time :refer [unix-time]]
            [riemann.test :refer [tests deftest]]
            [clojure.test :refer [is]]
            [clojure.set :as set]
            [acme.inventory :as inventory]))

(defn- summary [name fold events]
  (when-let [event (fold events)]
    (-> (into {} (remove (comp nil? val) event))
        (dissoc :host :rack :tags)
        (assoc :service (str (:service event) " " name) :time (unix-time)))))

(defn every-so-often
  "For events of one service on many hosts: every dt seconds an event of all of them, by a fold, in each place."
  [dt name fold & children]
  (let [all (apply sdo children)]
    (by [:place :service]
      (coalesce dt
        (smap (partial summary name (fn [events] (fold (remove #(= "expired" (:state %)) events))))
          all)))))

(defn missing
  "The hosts of a role in a place that are not among events."
  [role place events]
  (sort (set/difference (set (inventory/of-role role place)) (set (map :host events)))))

(defn imbalance
  "The greatest metric divided by the mean; nil without any."
  [events]
  (let [{most :metric} (folds/maximum events)
        {mean :metric} (folds/mean events)]
    (when (and most mean (pos? mean))
      (assoc (first events) :metric (/ most mean)))))

(tests
  (deftest missing-hosts
    (is (= ["db2.muc.acme.example"] (acme.cluster/missing "db" "muc" [{:host "db1.muc.acme.example"} {:host "other"}]))))

  (deftest imbalances
    (is (= 3/2 (:metric (acme.cluster/imbalance [{:metric 1} {:metric 3} {:metric 2}]))))
    (is (nil? (acme.cluster/imbalance [{:metric 0} {:metric 0}])))
    (is (nil? (acme.cluster/imbalance [])))))
