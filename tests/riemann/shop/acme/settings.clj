(ns acme.settings
  "Numbers and names that change more often than the rest.")

(def environment (or (System/getenv "ACME_ENVIRONMENT") "production"))

(def listen
  {:host          "0.0.0.0"
   :tcp-port      5555
   :udp-port      5555
   :graphite-port 2003})

(def default-ttl 90)

(def graphite-host "graphite.acme.example")

(def people
  {:frontend ["web@acme.example"]
   :storage  ["dba@acme.example" "storage@acme.example"]
   :network  ["noc@acme.example"]
   :payment  ["payment@acme.example" "cto@acme.example"]
   :nobody   []})

(def pages-per-hour
  "How many pages a team gets at once in an hour; the others come together at its end."
  {:frontend 3
   :storage  3
   :network  2
   :payment  5})

; Service, or the regular expression of several: from which metric on it is a warning, and critical. The first one that matches.
(def thresholds
  [{:service "cpu"                        :warning 0.8    :critical 0.95}
   {:service "load"                       :warning 8      :critical 16}
   {:service "memory"                     :warning 0.85   :critical 0.95}
   {:service "swap"                       :warning 0.1    :critical 0.5}
   {:service "processes"                  :warning 500    :critical 2000}
   {:service "file descriptors"           :warning 0.7    :critical 0.9}
   {:service "entropy"                    :warning 200    :critical 50       :low? true}
   {:service "clock offset"               :warning 0.1    :critical 1}
   {:service #"^disk /var/lib/postgresql" :warning 0.7    :critical 0.85     :role "db"}
   {:service #"^disk /mnt/backup"         :warning 0.9    :critical 0.98}
   {:service #"^disk "                    :warning 0.8    :critical 0.92}
   {:service #"^inodes "                  :warning 0.8    :critical 0.95}
   {:service #"^temperature "             :warning 60     :critical 75}
   {:service #"^fan "                     :warning 900    :critical 300      :low? true}
   {:service #"^if .* errors$"            :warning 1      :critical 50}
   {:service #"^if .* usage$"             :warning 0.7    :critical 0.9}
   {:service "ping"                       :warning 0.05   :critical 0.2}
   {:service "packet loss"                :warning 0.01   :critical 0.1}
   {:service "nginx active connections"   :warning 2000   :critical 5000     :role "web"}
   {:service "nginx waiting"              :warning 500    :critical 1500     :role "web"}
   {:service "php workers busy"           :warning 0.8    :critical 0.95     :role "web"}
   {:service "certificate days left"      :warning 21     :critical 7        :low? true}
   {:service "pg connections"             :warning 150    :critical 190      :role "db"}
   {:service "pg replication lag"         :warning 10     :critical 60       :role "db"}
   {:service "pg locks waiting"           :warning 5      :critical 20       :role "db"}
   {:service "pg transactions age"        :warning 1e8    :critical 1e9      :role "db"}
   {:service "redis memory"               :warning 0.8    :critical 0.95     :role "cache"}
   {:service "redis evictions"            :warning 1      :critical 1000     :role "cache"}
   {:service "redis hit ratio"            :warning 0.8    :critical 0.5      :role "cache" :low? true}
   {:service #"^queue .* length$"         :warning 1000   :critical 10000    :role "queue"}
   {:service #"^queue .* age$"            :warning 60     :critical 600      :role "queue"}
   {:service #"^queue .* consumers$"      :warning 1      :critical 0        :role "queue" :low? true}
   {:service "search heap"                :warning 0.75   :critical 0.9      :role "search"}
   {:service "search unassigned shards"   :warning 1      :critical 10       :role "search"}
   {:service "backup age hours"           :warning 26     :critical 50}
   {:service "mail queue"                 :warning 100    :critical 1000}
   {:service "ups load"                   :warning 0.7    :critical 0.9}
   {:service "ups minutes left"           :warning 20     :critical 5        :low? true}])
