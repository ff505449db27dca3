//! The actions that are decided about, under the names that AWS gives them; `mw:` names what only worlds have.

/// What kind of thing an action does, for grants that are narrowed to some verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Reading one object.
    Get,
    /// Listing names.
    List,
    /// Writing one object.
    Put,
    /// Deleting one object.
    Delete,
    /// The world as a whole: its settings, history, snapshots.
    World,
}

macro_rules! actions {
    ($($name:ident = $text:literal, $class:ident, $bucket:literal;)*) => {
        /// Something that a principal may or may not do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Action {
            $(#[doc = concat!("`", $text, "`.")] $name,)*
        }

        impl Action {
            /// Every action.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the name that policies use.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns what kind of thing it does.
            pub fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }

            /// Returns whether its resource is the bucket and not a key in it.
            pub fn is_about_bucket(self) -> bool {
                match self { $(Self::$name => $bucket,)* }
            }
        }
    };
}

actions! {
    GetObject = "s3:GetObject", Get, false;
    GetObjectVersion = "s3:GetObjectVersion", Get, false;
    GetObjectAttributes = "s3:GetObjectAttributes", Get, false;
    GetObjectTagging = "s3:GetObjectTagging", Get, false;
    GetObjectAcl = "s3:GetObjectAcl", Get, false;
    ListMultipartUploadParts = "s3:ListMultipartUploadParts", List, false;
    PutObject = "s3:PutObject", Put, false;
    PutObjectTagging = "s3:PutObjectTagging", Put, false;
    DeleteObjectTagging = "s3:DeleteObjectTagging", Put, false;
    PutObjectAcl = "s3:PutObjectAcl", Put, false;
    AbortMultipartUpload = "s3:AbortMultipartUpload", Put, false;
    DeleteObject = "s3:DeleteObject", Delete, false;
    DeleteObjectVersion = "s3:DeleteObjectVersion", Delete, false;
    ListBucket = "s3:ListBucket", List, true;
    ListBucketVersions = "s3:ListBucketVersions", List, true;
    ListBucketMultipartUploads = "s3:ListBucketMultipartUploads", List, true;
    GetBucketLocation = "s3:GetBucketLocation", List, true;
    GetBucketVersioning = "s3:GetBucketVersioning", World, true;
    PutBucketVersioning = "s3:PutBucketVersioning", World, true;
    GetBucketCors = "s3:GetBucketCORS", World, true;
    PutBucketCors = "s3:PutBucketCORS", World, true;
    GetBucketAcl = "s3:GetBucketAcl", World, true;
    PutBucketAcl = "s3:PutBucketAcl", World, true;
    DeleteBucket = "s3:DeleteBucket", World, true;
    ReadHistory = "mw:ReadHistory", World, true;
    Snapshot = "mw:Snapshot", World, true;
    Fork = "mw:Fork", World, true;
    Promote = "mw:Promote", World, true;
    ManageKeys = "mw:ManageKeys", World, true;
}
