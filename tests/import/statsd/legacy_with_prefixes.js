{
  graphiteHost: "carbon",
  // Does nothing: the legacy namespace is the default.
  graphite: { globalPrefix: "prod", globalSuffix: "" }
}
