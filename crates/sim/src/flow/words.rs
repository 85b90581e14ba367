//! The words of the flow language, in the order of the reference (`docs/flow-files.md`).

/// The first word of a step: (word, its operands).
pub(crate) const WORDS: &[(&str, &str)] = &[
    ("config", "a line of TOML; or `file NAME`, `yaml`, `statsd [NAME] [node|perl]`, `relay [NAME]`"),
    ("env", "NAME VALUE"),
    ("seed", "NUMBER"),
    ("send", "SOURCE PACKET"),
    ("stream", "SOURCE CONNECTION BYTES"),
    ("frames", "SOURCE CONNECTION PACKET"),
    ("close", "SOURCE CONNECTION"),
    ("reset", "SOURCE CONNECTION"),
    ("repeat", "NUMBER STEP, where `{n}` counts from 1"),
    ("advance", "DURATION, such as `10s`"),
    ("wall", "STEP, such as `-1h` or `+250ms`"),
    ("endpoint", "OUTPUT up|down|hang|cut [after BYTES]"),
    (
        "expect",
        "OUTPUT NAME VALUE [at TIME]; or `line`, `packet`, `event`, `contains` and a text; or `member PATH VALUE`",
    ),
    ("absent", "OUTPUT PATTERN"),
    ("only", "OUTPUT [all]"),
    ("count", "OUTPUT NUMBER [PATTERN]"),
    ("reply", "SOURCE CONNECTION TEXT|none"),
    ("outcomes", "SOURCE|FROM->TRANSFORM [exactly] WORD NUMBER|some …"),
    ("copies", "OUTPUT [exactly] WORD NUMBER|some …"),
    ("series", "PATTERN KIND VALUE; or PATTERN NUMBER; or PATTERN none"),
    ("delete", "counter|timer|gauge|set NAME"),
    ("reload", "[refused [CODE]], with the new `config` lines below it"),
    ("crash", "nothing, or `power` when the machine goes down as well"),
    ("stop", "nothing"),
];

/// The operands of `word`; `None` for an unknown word.
pub(crate) fn usage(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(known, _)| *known == word).map(|(_, usage)| *usage)
}
