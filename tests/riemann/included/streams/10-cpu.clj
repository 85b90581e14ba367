(def cpu-limit 0.9)

(streams
  (fn [_] (swap! order conj :cpu))
  (where (and (service "cpu") (> metric cpu-limit))
    (tap :cpu idx mail)))

(tests
  (deftest the-limit-of-cpu
    (is (= [2] (map :time (:cpu (inject! [{:service "cpu" :metric 0.9 :time 1} {:service "cpu" :metric 0.91 :time 2}])))))))
