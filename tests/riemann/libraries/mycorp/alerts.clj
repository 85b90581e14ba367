(ns mycorp.alerts
  "Streams that raise alerts."
  (:require [riemann.streams :refer :all]
            [riemann.config :refer [streams]]
            [riemann.test :refer [tap io tests deftest inject!]]
            [clojure.tools.logging :refer [warn]]
            [clojure.string :as string]))

(defn over
  "Passes events whose metric is over the limit that a function gives for their service."
  [limit & children]
  (fn [{:keys [service metric] :as event}]
    (when-let [limit (limit service)]
      (when (and metric (> metric limit))
        (call-rescue event children)))))

(defn- lost [event]
  (assoc event :state "lost" :description (string/join " " ["lost:" (:host event)])))

(defn add-streams! []
  (streams
    (expired
      (smap lost
        (tap ::lost (io #(warn (:description %))))))))

(tests
  (deftest a-private-function
    (is (= "lost: x" (:description (#'mycorp.alerts/lost {:host "x"}))))))
