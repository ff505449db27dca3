//! A client of NFS version 3, as small as the tests need.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

pub type Handle = Vec<u8>;

/// What a lookup tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub handle: Handle,
    pub nlink: u32,
    pub ino: u64,
}

pub struct Client {
    stream: TcpStream,
    pub uid: u32,
    pub gid: u32,
}

/// Builds parameters.
#[derive(Default, Clone)]
pub struct W(Vec<u8>);

impl W {
    fn u32(mut self, n: u32) -> Self {
        self.0.extend(n.to_be_bytes());
        self
    }

    fn u64(mut self, n: u64) -> Self {
        self.0.extend(n.to_be_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self = self.u32(bytes.len() as u32);
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
}

/// Takes an answer apart.
struct R<'a>(&'a [u8]);

impl R<'_> {
    fn u32(&mut self) -> u32 {
        let (four, rest) = self.0.split_at(4);
        self.0 = rest;
        u32::from_be_bytes(four.try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    fn bytes(&mut self) -> Vec<u8> {
        let n = self.u32() as usize;
        let bytes = self.0[..n].to_vec();
        self.0 = &self.0[n.next_multiple_of(4)..];
        bytes
    }

    /// Attributes, if they come; returns names and number.
    fn attr(&mut self) -> Option<(u32, u64)> {
        (self.u32() == 1).then(|| {
            let (_, _, nlink) = (self.u32(), self.u32(), self.u32());
            self.0 = &self.0[8 + 16 + 8 + 8..];
            let ino = self.u64();
            self.0 = &self.0[24..];
            (nlink, ino)
        })
    }

    fn change(&mut self) {
        if self.u32() == 1 {
            self.0 = &self.0[24..];
        }
        self.attr();
    }
}

/// Attributes to set: a mode, an owner.
pub fn sattr(mode: Option<u32>, uid: Option<u32>) -> W {
    let optional = |w: W, n: Option<u32>| match n {
        Some(n) => w.u32(1).u32(n),
        None => w.u32(0),
    };
    optional(optional(W::default(), mode), uid).u32(0).u32(0).u32(0).u32(0)
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        Self { stream, uid: 1000, gid: 1000 }
    }

    fn call(&self, program: u32, procedure: u32, parameters: &W) -> Vec<u8> {
        static XIDS: AtomicU32 = AtomicU32::new(1);
        let who = W::default().u32(0).bytes(b"test").u32(self.uid).u32(self.gid).u32(0);
        W::default()
            .u32(XIDS.fetch_add(1, Ordering::Relaxed))
            .u32(0)
            .u32(2)
            .u32(program)
            .u32(3)
            .u32(procedure)
            .u32(1)
            .bytes(&who.0)
            .u32(0)
            .u32(0)
            .raw(&parameters.0)
            .0
    }

    pub fn try_exchange(&mut self, call: &[u8]) -> Option<Vec<u8>> {
        let head = call.len() as u32 | 1 << 31;
        self.stream.write_all(&[&head.to_be_bytes(), call].concat()).ok()?;
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).ok()?;
        let mut answer = vec![0; (u32::from_be_bytes(head) & !(1 << 31)) as usize];
        self.stream.read_exact(&mut answer).ok()?;
        Some(answer)
    }

    pub fn exchange(&mut self, call: &[u8]) -> Vec<u8> {
        self.try_exchange(call).unwrap()
    }

    fn nfs(&mut self, procedure: u32, parameters: &W) -> Vec<u8> {
        let call = self.call(100_003, procedure, parameters);
        let answer = self.exchange(&call);
        assert_eq!(answer[20..24], [0; 4], "the call was done");
        answer[24..].to_vec()
    }

    pub fn mount(&mut self, path: &str) -> Result<Handle, u32> {
        let call = self.call(100_005, 1, &W::default().bytes(path.as_bytes()));
        let answer = self.exchange(&call);
        let mut r = R(&answer[24..]);
        match r.u32() {
            0 => Ok(r.bytes()),
            status => Err(status),
        }
    }

    pub fn lookup(&mut self, dir: &[u8], name: &str) -> Result<Found, u32> {
        let answer = self.nfs(3, &W::default().bytes(dir).bytes(name.as_bytes()));
        let mut r = R(&answer);
        match r.u32() {
            0 => {
                let handle = r.bytes();
                let (nlink, ino) = r.attr().unwrap();
                Ok(Found { handle, nlink, ino })
            }
            status => Err(status),
        }
    }

    fn made(answer: &[u8]) -> Result<Handle, u32> {
        let mut r = R(answer);
        match r.u32() {
            0 => {
                assert_eq!(r.u32(), 1);
                let handle = r.bytes();
                assert!(r.attr().is_some());
                r.change();
                assert!(r.0.is_empty());
                Ok(handle)
            }
            status => Err(status),
        }
    }

    pub fn create(&mut self, dir: &[u8], name: &str, mode: u32) -> Result<Handle, u32> {
        let parameters = W::default().bytes(dir).bytes(name.as_bytes()).u32(1).raw(&sattr(Some(mode), None).0);
        Self::made(&self.nfs(8, &parameters))
    }

    fn mkdir_parameters(dir: &[u8], name: &str, mode: u32) -> W {
        W::default().bytes(dir).bytes(name.as_bytes()).raw(&sattr(Some(mode), None).0)
    }

    pub fn mkdir(&mut self, dir: &[u8], name: &str, mode: u32) -> Result<Handle, u32> {
        Self::made(&self.nfs(9, &Self::mkdir_parameters(dir, name, mode)))
    }

    pub fn mkdir_call(&self, dir: &[u8], name: &str, mode: u32) -> Vec<u8> {
        self.call(100_003, 9, &Self::mkdir_parameters(dir, name, mode))
    }

    pub fn symlink(&mut self, dir: &[u8], name: &str, target: &str) -> Result<Handle, u32> {
        let parameters = Self::mkdir_parameters(dir, name, 0o777).bytes(target.as_bytes());
        Self::made(&self.nfs(10, &parameters))
    }

    pub fn readlink(&mut self, link: &[u8]) -> Result<Vec<u8>, u32> {
        let answer = self.nfs(5, &W::default().bytes(link));
        let mut r = R(&answer);
        let status = r.u32();
        r.attr();
        if status == 0 { Ok(r.bytes()) } else { Err(status) }
    }

    pub fn link(&mut self, file: &[u8], dir: &[u8], name: &str) -> u32 {
        R(&self.nfs(15, &W::default().bytes(file).bytes(dir).bytes(name.as_bytes()))).u32()
    }

    pub fn remove_call(&self, dir: &[u8], name: &str) -> Vec<u8> {
        self.call(100_003, 12, &W::default().bytes(dir).bytes(name.as_bytes()))
    }

    pub fn remove(&mut self, dir: &[u8], name: &str, directory: bool) -> u32 {
        let parameters = W::default().bytes(dir).bytes(name.as_bytes());
        R(&self.nfs(if directory { 13 } else { 12 }, &parameters)).u32()
    }

    pub fn rename(&mut self, from: &[u8], name: &str, to: &[u8], new: &str) -> u32 {
        let parameters = W::default().bytes(from).bytes(name.as_bytes()).bytes(to).bytes(new.as_bytes());
        R(&self.nfs(14, &parameters)).u32()
    }

    /// Returns the status and how the write was committed.
    pub fn write(&mut self, file: &[u8], offset: u64, data: &[u8], stable: u32) -> (u32, u32) {
        let parameters = W::default().bytes(file).u64(offset).u32(data.len() as u32).u32(stable).bytes(data);
        let answer = self.nfs(7, &parameters);
        let mut r = R(&answer);
        let status = r.u32();
        r.change();
        if status != 0 {
            return (status, 0);
        }
        assert_eq!(r.u32() as usize, data.len());
        (status, r.u32())
    }

    pub fn commit(&mut self, file: &[u8]) -> u32 {
        R(&self.nfs(21, &W::default().bytes(file).u64(0).u32(0))).u32()
    }

    pub fn read(&mut self, file: &[u8], offset: u64, count: u32) -> Result<(Vec<u8>, bool), u32> {
        let answer = self.nfs(6, &W::default().bytes(file).u64(offset).u32(count));
        let mut r = R(&answer);
        let status = r.u32();
        r.attr();
        if status != 0 {
            return Err(status);
        }
        let (count, end) = (r.u32() as usize, r.u32() == 1);
        let bytes = r.bytes();
        assert_eq!(bytes.len(), count);
        Ok((bytes, end))
    }

    pub fn access(&mut self, file: &[u8], asked: u32) -> u32 {
        let answer = self.nfs(4, &W::default().bytes(file).u32(asked));
        let mut r = R(&answer);
        assert_eq!(r.u32(), 0);
        r.attr();
        r.u32()
    }

    pub fn setattr(&mut self, file: &[u8], set: &W) -> u32 {
        R(&self.nfs(2, &W::default().bytes(file).raw(&set.0).u32(0))).u32()
    }

    /// Returns names with their cookies, the verifier, and whether that was all.
    #[allow(clippy::type_complexity, reason = "the parts of one answer")]
    pub fn list(
        &mut self,
        dir: &[u8],
        cookie: u64,
        verifier: u64,
        most: u32,
        plus: bool,
    ) -> Result<(Vec<(String, u64)>, u64, bool), u32> {
        let mut parameters = W::default().bytes(dir).u64(cookie).u64(verifier).u32(most);
        if plus {
            parameters = parameters.u32(most);
        }
        let answer = self.nfs(if plus { 17 } else { 16 }, &parameters);
        assert!(answer.len() <= most as usize);
        let mut r = R(&answer);
        let status = r.u32();
        r.attr();
        if status != 0 {
            return Err(status);
        }
        let verifier = r.u64();
        let mut entries = Vec::new();
        while r.u32() == 1 {
            r.u64();
            let name = String::from_utf8(r.bytes()).unwrap();
            entries.push((name, r.u64()));
            if plus {
                assert!(r.attr().is_some());
                assert_eq!(r.u32(), 1);
                r.bytes();
            }
        }
        Ok((entries, verifier, r.u32() == 1))
    }
}
