(ns acme.outputs
  "Where events go. Mail, chat and pages are functions that only log: the outputs that send them are set up elsewhere."
  (:require [riemann.streams :refer :all]
            [riemann.config :refer :all]
            [riemann.test :refer [tap io]]
            [clojure.string :as string]
            [clojure.tools.logging :refer [info warn error]]
            [acme.settings :as settings]
            [acme.report :as report]))

(defn path
  "place.role.host.service, with underscores for everything that Graphite does not like."
  [{:keys [place role host service]}]
  (let [clean (fn [part] (string/replace (str part) #"[^A-Za-z0-9_-]+" "_"))]
    (string/join "." (cons settings/environment
                       (map clean (remove nil? [place role (first (string/split (or host "none") #"\.")) service]))))))

(def graphite-output
  (graphite {:host settings/graphite-host
             :port 2003
             :path path
             :pool-size 8
             :claim-timeout 0.5
             :reconnect-interval 10
             :block-start false}))

(def to-graphite
  "A stream of vectors of events."
  (async-queue! :graphite {:queue-size 1e5 :core-pool-size 2 :max-pool-size 8}
    (sflatten
      (tap :graphite graphite-output))))

(defn- send-mail [{:keys [to subject]}]
  (info "mail to" (string/join ", " to) ":" subject))

(def mail
  "A stream of mails: maps with :to, :subject and :body."
  (tap :mail (io send-mail)))

(def page
  "A stream of pages: maps with :team, :subject and :count."
  (tap :page (io #(error "page" %))))

(def chat
  "A stream of lines for the chat."
  (tap :chat (io #(info "chat" (:text %)))))

(defn mail-to
  "A stream of vectors of events, each of which becomes a mail to a team."
  [team]
  (smap (fn [events]
          (let [to (get settings/people team)]
            (when (seq to)
              {:to to :subject (report/subject events) :body (report/body events)})))
    mail))

(defn page-team
  "A stream of vectors of events, each of which becomes a page for a team."
  [team]
  (smap (fn [events] {:team team :subject (report/subject events) :count (count events)})
    page))

(def post
  "A stream of events, each of which becomes a line in the chat."
  (smap (fn [event] {:text (report/line event)})
    chat))
