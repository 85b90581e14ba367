(ns acme.inventory
  "Which hosts there are, what they do, and who looks after them."
  (:require [clojure.string :as string]
            [riemann.test :refer [tests deftest]]
            [clojure.test :refer [is are]]))

(def teams
  "Who looks after a role."
  {"web"    "frontend"
   "app"    "frontend"
   "db"     "storage"
   "cache"  "storage"
   "queue"  "storage"
   "search" "storage"
   "lb"     "network"
   "fw"     "network"
   "pay"    "payment"
   "mon"    "nobody"})

(def hosts
  "Each host with its place, rack and role; some with more."
  {"web1.muc.acme.example"    {:place "muc" :rack 1 :role "web"}
   "web2.muc.acme.example"    {:place "muc" :rack 2 :role "web"}
   "web3.muc.acme.example"    {:place "muc" :rack 3 :role "web"}
   "web4.muc.acme.example"    {:place "muc" :rack 1 :role "web"}
   "web5.muc.acme.example"    {:place "muc" :rack 2 :role "web"}
   "web6.muc.acme.example"    {:place "muc" :rack 3 :role "web"}
   "app1.muc.acme.example"    {:place "muc" :rack 1 :role "app"}
   "app2.muc.acme.example"    {:place "muc" :rack 2 :role "app"}
   "app3.muc.acme.example"    {:place "muc" :rack 3 :role "app"}
   "app4.muc.acme.example"    {:place "muc" :rack 1 :role "app"}
   "db1.muc.acme.example"     {:place "muc" :rack 1 :role "db" :replica? false}
   "db2.muc.acme.example"     {:place "muc" :rack 2 :role "db" :replica? true}
   "cache1.muc.acme.example"  {:place "muc" :rack 1 :role "cache"}
   "cache2.muc.acme.example"  {:place "muc" :rack 2 :role "cache"}
   "queue1.muc.acme.example"  {:place "muc" :rack 1 :role "queue"}
   "queue2.muc.acme.example"  {:place "muc" :rack 2 :role "queue"}
   "search1.muc.acme.example" {:place "muc" :rack 1 :role "search"}
   "search2.muc.acme.example" {:place "muc" :rack 2 :role "search"}
   "lb1.muc.acme.example"     {:place "muc" :rack 1 :role "lb"}
   "fw1.muc.acme.example"     {:place "muc" :rack 1 :role "fw"}
   "fw2.muc.acme.example"     {:place "muc" :rack 2 :role "fw"}
   "pay1.muc.acme.example"    {:place "muc" :rack 1 :role "pay" :card-data? true}
   "mon1.muc.acme.example"    {:place "muc" :rack 1 :role "mon" :silent? true}
   "web1.fra.acme.example"    {:place "fra" :rack 1 :role "web"}
   "web2.fra.acme.example"    {:place "fra" :rack 2 :role "web"}
   "web3.fra.acme.example"    {:place "fra" :rack 3 :role "web"}
   "web4.fra.acme.example"    {:place "fra" :rack 1 :role "web"}
   "web5.fra.acme.example"    {:place "fra" :rack 2 :role "web"}
   "web6.fra.acme.example"    {:place "fra" :rack 3 :role "web"}
   "app1.fra.acme.example"    {:place "fra" :rack 1 :role "app"}
   "app2.fra.acme.example"    {:place "fra" :rack 2 :role "app"}
   "app3.fra.acme.example"    {:place "fra" :rack 3 :role "app"}
   "app4.fra.acme.example"    {:place "fra" :rack 1 :role "app"}
   "db1.fra.acme.example"     {:place "fra" :rack 1 :role "db" :replica? true}
   "db2.fra.acme.example"     {:place "fra" :rack 2 :role "db" :replica? true}
   "cache1.fra.acme.example"  {:place "fra" :rack 1 :role "cache"}
   "cache2.fra.acme.example"  {:place "fra" :rack 2 :role "cache"}
   "queue1.fra.acme.example"  {:place "fra" :rack 1 :role "queue"}
   "queue2.fra.acme.example"  {:place "fra" :rack 2 :role "queue"}
   "search1.fra.acme.example" {:place "fra" :rack 1 :role "search"}
   "search2.fra.acme.example" {:place "fra" :rack 2 :role "search"}
   "lb1.fra.acme.example"     {:place "fra" :rack 1 :role "lb"}
   "fw1.fra.acme.example"     {:place "fra" :rack 1 :role "fw"}
   "fw2.fra.acme.example"     {:place "fra" :rack 2 :role "fw"}
   "pay1.fra.acme.example"    {:place "fra" :rack 1 :role "pay" :card-data? true}
   "mon1.fra.acme.example"    {:place "fra" :rack 1 :role "mon" :silent? true}})

(defn short-name
  "web1.muc of web1.muc.acme.example."
  [host]
  (when host
    (string/join "." (take 2 (string/split host #"\.")))))

(defn known? [host]
  (contains? hosts host))

(defn enrich
  "An event with place, rack, role and team of its host, unless it has its own. Events of other hosts are as they were."
  [{:keys [host] :as event}]
  (if-let [{:keys [role] :as known} (get hosts host)]
    (let [fields (assoc (select-keys known [:place :rack :role]) :team (get teams role "nobody"))]
      (reduce-kv (fn [e k v] (if (nil? (get e k)) (assoc e k v) e)) event fields))
    event))

(defn of-role
  "The names of hosts with a role, perhaps of one place only."
  ([role]
   (sort (for [[host known] hosts :when (= role (:role known))] host)))
  ([role place]
   (filter #(= place (:place (hosts %))) (of-role role))))

(defn silent? [host]
  (boolean (get-in hosts [host :silent?])))

(tests
  (deftest hosts-that-we-know
    (is (= 46 (count acme.inventory/hosts)))
    (is (acme.inventory/known? "db1.muc.acme.example"))
    (is (not (acme.inventory/known? "db1")))
    (is (= ["db1.fra.acme.example" "db2.fra.acme.example"] (acme.inventory/of-role "db" "fra")))
    (is (= 12 (count (acme.inventory/of-role "web"))))
    (is (acme.inventory/silent? "mon1.fra.acme.example"))
    (is (false? (acme.inventory/silent? "pay1.fra.acme.example"))))

  (deftest every-role-has-a-team
    (is (empty? (remove acme.inventory/teams (distinct (map :role (vals acme.inventory/hosts)))))))

  (deftest an-event-keeps-its-own-fields
    (is (= {:host "pay1.muc.acme.example" :place "here" :rack 1 :role "pay" :team "payment"}
           (acme.inventory/enrich {:host "pay1.muc.acme.example" :place "here" :role nil})))
    (is (= {:host "x"} (acme.inventory/enrich {:host "x"}))))

  (deftest short-names
    (are [short long] (= short (acme.inventory/short-name long))
      "web1.muc" "web1.muc.acme.example"
      "web1"     "web1"
      nil        nil)))
