(ns acme.parse
  "Events out of names and lines of other programs."
  (:require [clojure.string :as string]
            [riemann.test :refer [tests deftest]]
            [clojure.test :refer [is are]]))

(def collectd-names
  "Of collectd's names to ours."
  [[#"^load\.load\.shortterm$"             (constantly "load")]
   [#"^memory\.percent-used$"              (constantly "memory")]
   [#"^df-(.+)\.percent_bytes-used$"       (fn [[_ disk]] (str "disk /" (string/replace (if (= disk "root") "" disk) "-" "/")))]
   [#"^interface-(\w+)\.if_errors\.(rx|tx)$" (fn [[_ interface direction]] (str "if " interface " " direction " errors"))]
   [#"^cpu\.percent-(\w+)$"                (fn [[_ kind]] (if (= kind "active") "cpu" (str "cpu " kind)))]
   [#"^processes\.ps_state-(\w+)$"         (fn [[_ state]] (str "processes " state))]])

(def in-percent #"percent")

(defn service-of
  "Our name, or the same one."
  [name]
  (or (some (fn [[pattern to]]
              (when-let [found (re-find pattern name)]
                (to (if (string? found) [found] found))))
        collectd-names)
      name))

(defn collectd
  "An event of a point that collectd sent to Graphite's port: \"collectd.host_with_underscores.plugin.type\"."
  [{:keys [service metric] :as event}]
  (if-let [[_ host name] (re-matches #"collectd\.([^.]+)\.(.+)" (or service ""))]
    (assoc event
      :host    (string/replace host "_" ".")
      :service (service-of name)
      :metric  (if (re-find in-percent name) (/ metric 100.0) metric)
      :tags    ["collectd"])
    event))

(defn access-line
  "What a line of an access log says, or nil: method, path without its query, code, bytes, seconds."
  [line]
  (when-let [[_ method path code bytes seconds]
             (re-matches #"(?s).*\"(GET|HEAD|POST|PUT|DELETE|PATCH) ([^ ?]*)\S* HTTP/[\d.]+\" (\d{3}) (\d+|-) ([\d.]+)\s*" line)]
    {:method  (keyword (string/lower-case method))
     :path    path
     :code    (Integer/parseInt code)
     :bytes   (if (= bytes "-") 0 (Long/parseLong bytes))
     :seconds (Double/parseDouble seconds)}))

(defn page-of
  "A path without its numbers and words of more than 20 characters."
  [path]
  (let [parts (remove string/blank? (string/split path #"/"))
        known (map #(cond (re-matches #"\d+" %) "N" (> (count %) 20) "…" :else %) parts)]
    (str "/" (string/join "/" (take 3 known)))))

(tests
  (deftest names-of-collectd
    (are [service name] (= service (acme.parse/service-of name))
      "load"             "load.load.shortterm"
      "disk /"           "df-root.percent_bytes-used"
      "disk /var/lib"    "df-var-lib.percent_bytes-used"
      "if eth0 rx errors" "interface-eth0.if_errors.rx"
      "cpu"              "cpu.percent-active"
      "cpu wait"         "cpu.percent-wait"
      "other.thing"      "other.thing"))

  (deftest points-of-collectd
    (is (= {:host "web1.muc.acme.example" :service "memory" :metric 0.425 :tags ["collectd"] :time 1}
           (acme.parse/collectd {:service "collectd.web1_muc_acme_example.memory.percent-used" :metric 42.5 :time 1})))
    (is (= {:service "x.y" :metric 1} (acme.parse/collectd {:service "x.y" :metric 1})))
    (is (= {:metric 1} (acme.parse/collectd {:metric 1}))))

  (deftest lines-of-an-access-log
    (is (= {:method :get :path "/cart" :code 200 :bytes 512 :seconds 0.25}
           (acme.parse/access-line "10.0.0.1 - - [x] \"GET /cart?id=1 HTTP/1.1\" 200 512 0.25")))
    (is (= [:post 302 0] (map (acme.parse/access-line "\"POST / HTTP/2.0\" 302 - 1") [:method :code :bytes])))
    (is (nil? (acme.parse/access-line "\"BREW /pot HTTP/1.0\" 418 - 1")))
    (is (nil? (acme.parse/access-line ""))))

  (deftest pages
    (are [page path] (= page (acme.parse/page-of path))
      "/"           "/"
      "/cart"       "/cart"
      "/item/N"     "/item/1234"
      "/a/b/c"      "/a/b/c/d"
      "/…"          "/abcdefghijklmnopqrstu")))
