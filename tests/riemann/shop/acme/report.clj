(ns acme.report
  "Texts of mails, pages and chats."
  (:require [clojure.string :as string]
            [riemann.test :refer [tests deftest]]
            [clojure.test :refer [is are]]
            [acme.inventory :refer [short-name]]))

(def ranks
  {"ok" 0 "info" 1 "unknown" 2 "warning" 3 "expired" 4 "critical" 5})

(defn rank [event]
  (get ranks (:state event) 2))

(defn worst [events]
  (when (seq events)
    (apply max-key rank events)))

(defn some-of
  "\"a, b and 3 more\""
  [names]
  (let [names (distinct (remove nil? names))
        [shown others] (split-at 2 names)]
    (cond
      (empty? names)  "nothing"
      (empty? others) (string/join " and " shown)
      :else           (str (string/join ", " shown) " and " (count others) " more"))))

(defn subject [events]
  (let [{:keys [state]} (worst events)]
    (str (string/upper-case (or state "unknown")) ": "
         (some-of (map :service events)) " on "
         (some-of (map (comp short-name :host) events)))))

(defn number
  "A metric for people: at most two decimals, k, M and G."
  [x]
  (letfn [(two [x] (-> (format "%.2f" (double x))
                       (string/replace #"\.?0+$" "")))]
    (cond
      (nil? x)          "-"
      (neg? x)          (str "-" (number (- x)))
      (>= x 1000000000) (str (two (/ x 1000000000)) "G")
      (>= x 1000000)    (str (two (/ x 1000000)) "M")
      (>= x 10000)      (str (two (/ x 1000)) "k")
      (integer? x)      (str x)
      (zero? x)         "0"
      :else             (two x))))

(defn duration [seconds]
  (let [seconds (long seconds)
        parts   [[(quot seconds 86400) "d"]
                 [(rem (quot seconds 3600) 24) "h"]
                 [(rem (quot seconds 60) 60) "min"]
                 [(rem seconds 60) "s"]]
        shown   (take 2 (drop-while (comp zero? first) parts))]
    (if (empty? shown)
      "0 s"
      (string/join " " (for [[n unit] shown :when (pos? n)] (str n " " unit))))))

(defn line [{:keys [host service state metric description]}]
  (str "[" (or state "unknown") "] " (or (short-name host) "-") " " service ": " (number metric)
       (when-not (string/blank? description)
         (str " (" description ")"))))

(defn body [events]
  (->> events
       (group-by :state)
       (sort-by (fn [[state _]] (- (get ranks state 2))))
       (map (fn [[state events]]
              (str (or state "unknown") " (" (count events) ")\n"
                   (string/join "\n" (map #(str "  " (line %)) (sort-by (juxt :host :service) events))))))
       (string/join "\n\n")))

(tests
  (deftest numbers
    (are [text x] (= text (acme.report/number x))
      "-"     nil
      "0"     0
      "0"     0.0
      "7"     7
      "0.33"  1/3
      "1.5"   1.5
      "2"     2.0
      "9999"  9999
      "12.3k" 12300
      "-4.5"  -4.5
      "3.25M" 3250000
      "1G"    1e9))

  (deftest durations
    (are [text s] (= text (acme.report/duration s))
      "0 s"      0
      "59 s"     59.9
      "1 min"    60
      "1 min 5 s" 65
      "2 h"      7205
      "1 d 2 h"  93784))

  (deftest subjects
    (are [text events] (= text (acme.report/subject events))
      "CRITICAL: cpu on web1.muc"
      [{:host "web1.muc.acme.example" :service "cpu" :state "critical"}]
      "WARNING: cpu and load on a and b"
      [{:host "a" :service "cpu" :state "ok"} {:host "b" :service "load" :state "warning"}]
      "UNKNOWN: 0, 1 and 2 more on a"
      (for [n (range 4)] {:host "a" :service (str n)})))

  (deftest bodies
    (is (= "critical (1)\n  [critical] a disk: 0.95\n\nok (2)\n  [ok] a cpu: 0.1 (idle)\n  [ok] b cpu: 1"
           (acme.report/body [{:host "b" :service "cpu" :state "ok" :metric 1}
                              {:host "a" :service "disk" :state "critical" :metric 0.95}
                              {:host "a" :service "cpu" :state "ok" :metric 0.1 :description "idle"}])))))
