//! `listen …;`

use super::{PACKINGS, Parsed, Parser};
use crate::relay::document::{Compression, ListenTls, Proto, TlsVersion};
use crate::relay::syntax::{ReceptorSyntax, StatementKind};

impl Parser<'_, '_> {
    pub(super) fn listen(&mut self) -> Parsed<StatementKind> {
        self.keywords(&["type", "linemode"])?;
        let compression = self.clause("transport", &PACKINGS)?;
        let tls = match compression {
            Some(_) if self.is("ssl") || self.is("mtls") => Some(self.listen_tls()?),
            _ => None,
        };
        let mut receptors = Vec::new();
        loop {
            let address = self.word("an address, port or path", &["proto", "transport", "type"])?;
            self.keywords(&["proto"])?;
            let proto =
                self.choice(&[("tcp", Some(Proto::Tcp)), ("udp", Some(Proto::Udp)), ("unix", None)])?;
            receptors.push(ReceptorSyntax { address, proto });
            if !self.word_comes(&["proto", "transport", "type"]) {
                break;
            }
        }
        self.end(&["type", "transport", "ssl", "mtls", "proto"])?;
        Ok(StatementKind::Listen { compression: compression.unwrap_or(Compression::Plain), tls, receptors })
    }

    fn listen_tls(&mut self) -> Parsed<ListenTls> {
        let mutual = self.is("mtls");
        self.at += 1;
        let pem = self.pem("the path of a file with chain and key", &["proto"])?;
        let mut tls = ListenTls { mutual, pem, min: None, max: None, ciphers: None, suites: None };
        let versions = TlsVersion::ALL.map(|version| (version.word(), version));
        loop {
            if self.take("protomin") {
                tls.min = Some(self.choice(&versions)?);
            } else if self.take("protomax") {
                tls.max = Some(self.choice(&versions)?);
            } else {
                break;
            }
        }
        if self.take("ciphers") {
            tls.ciphers = Some(self.word("ciphers", &[])?.text);
        }
        if self.take("ciphersuites") {
            tls.suites = Some(self.word("suites", &[])?.text);
        }
        Ok(tls)
    }
}
