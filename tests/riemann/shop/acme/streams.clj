(ns acme.streams
  "Streams that several areas use."
  (:require [riemann.streams :refer :all]
            [riemann.config :refer :all]
            [riemann.time :refer [unix-time]]
            [riemann.test :refer [tests deftest run-stream]]
            [clojure.test :refer [is]]
            [acme.settings :as settings]
            [acme.outputs :as outputs]))

(defn live
  "Passes events that have not expired."
  [& children]
  (apply where* (fn [event] (not= "expired" (:state event))) children))

(defn problems
  "Passes changes of a state that lasted so many seconds, of each host and service; ok from the beginning is no change. Events
  without a state have no problems."
  [seconds & children]
  (let [all (apply sdo children)]
    (where* :state
      (by [:host :service]
        (stable seconds :state
          (changed :state {:init "ok"}
            all))))))

(defn limited
  "For the vectors of a team's pages: as many at once as the settings say, the others at the end of the hour."
  [team & children]
  (apply rollup (get settings/pages-per-hour team 1) 3600 children))

(defn alert
  "A stream for changes of states: critical ones page the team and are mailed, warnings are mailed in batches, all are in the chat."
  [team]
  (sdo
    outputs/post
    (where (state "critical" "expired")
      (limited team
        (outputs/page-team team)))
    (where (not (state "ok"))
      (batch 50 60
        (outputs/mail-to team)))))

(defn per-second
  "Rates under another name."
  [dt name & children]
  (let [all (apply sdo children)]
    (by [:host :service]
      (rate dt
        (smap (fn [event] (assoc event :service (str (:service event) " " name)))
          all)))))

(defn unusual
  "Passes events whose metric is more than so many standard deviations from the mean of the last n, once there are n."
  [n deviations & children]
  (let [all (apply sdo children)]
    (by [:host :service]
      (moving-event-window n
        (smap (fn [events]
                (when (= n (count events))
                  (let [metrics (map :metric (butlast events))
                        mean    (/ (reduce + metrics) (count metrics))
                        spread  (Math/sqrt (/ (reduce + (map #(let [d (- % mean)] (* d d)) metrics)) (count metrics)))
                        event   (last events)
                        off     (Math/abs (double (- (:metric event) mean)))]
                    (when (> off (* deviations spread))
                      (assoc event :description (format "%.1f from a mean of %.1f" off (double mean)))))))
          all)))))

(defn once-per
  "Passes the first event of each key in so many seconds of event time."
  [seconds keyfn & children]
  (let [last-times (atom {})]
    (fn [{:keys [time] :as event}]
      (let [key  (keyfn event)
            last (get @last-times key)]
        (when (or (nil? last) (>= (- time last) seconds))
          (swap! last-times assoc key time)
          (call-rescue event children))))))

(tests
  (deftest unusual-values
    (let [events (map (fn [m] {:host "a" :service "s" :metric m}) [10 12 10 12 11 30 11])]
      (is (= [[30 "19.0 from a mean of 11.0"]]
             (map (juxt :metric :description) (run-stream (acme.streams/unusual 6 3) events))))))

  (deftest the-first-of-each-key
    (is (= [[1 "a"] [2 "b"] [11 "a"]]
           (map (juxt :time :host)
             (run-stream (acme.streams/once-per 10 :host)
               [{:time 1 :host "a"} {:time 2 :host "b"} {:time 10 :host "a"} {:time 11 :host "a"} {:time 11 :host "b"}]))))))
