(ns mycorp.limits)

(def limits (atom {"load" 4 "swap" 1}))

(defn limit-of [service]
  (get @limits service))
