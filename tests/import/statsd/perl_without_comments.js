{
    "backends": ["Console"],
    "percentThreshold": 95,
    "deleteIdleStats": 1,
    "flush_counts": false,
    "debugInterval": 30000,
    "graphite": { "legacyNamespace": 0 }
}
