; Included: in the namespace riemann.config, like the file that includes it.

(def order (atom []))

(def mail (tap :mail (io #(info "mail" %))))
