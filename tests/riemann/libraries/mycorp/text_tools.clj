(ns mycorp.text-tools
  (:require [clojure.string :refer [blank?]]))

(def ^:private longest 20)

(defn shorten
  "Cuts long descriptions, with three dots at their end."
  ([event] (shorten event longest))
  ([{:keys [description] :as event} n]
   (cond
     (blank? description)          event
     (<= (count description) n)    event
     :else (assoc event :description (str (subs description 0 (- n 3)) "...")))))
