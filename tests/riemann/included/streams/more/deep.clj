(streams
  (fn [_] (swap! order conj :deep)))
