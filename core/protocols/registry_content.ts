// The storage and authorisation interface of container registry servers (OCI Distribution API 1.1,
// github.com/opencontainers/distribution-spec): everything but layers is stored in rows.

/** Actions on the images of a registry. */
export type RegistryAction = 'pull' | 'push' | 'delete';

/** A registry as seen by its server. */
export interface ServedRegistry {
  id: string;
  project_id: string;
  size_bytes: number;
  /** Of the platform itself: its size is not limited. */
  is_own: boolean;
}

/** The full name of a repository: `acme/shop/web` is `shop/web` in the registry `acme`. */
export interface RepositoryName {
  registry: string;
  repository: string;
}

export interface StoredManifest {
  digest: string;
  media_type: string;
  content: Buffer;
}

export interface ManifestInput {
  repository: string;
  digest: string;
  media_type: string;
  artifact_type: string | null;
  /** Digest of the manifest that this one refers to, which may not exist. */
  subject: string | null;
  annotations: Record<string, string> | null;
  content: Buffer;
  /** Digests of layers and configuration. */
  blobs: string[];
  /** Digests of the manifests of an index. */
  manifests: string[];
  /** Empty: pushed by digest only. */
  tags: string[];
}

/** A referrer of a manifest (distribution-spec, "Listing Referrers"). */
export interface Referrer {
  digest: string;
  media_type: string;
  artifact_type: string | null;
  annotations: Record<string, string> | null;
  size: number;
}

/** Rows of a registry server. `subject`: id of the acting account, for the activity; null: the platform. */
export interface RegistryContent {
  /** null: the registry does not exist, or is being deleted. */
  find(name: string): Promise<ServedRegistry | null>;
  /** Size in bytes; null where the registry lacks the layer. Protects it from garbage collection for an hour. */
  blob(registryId: string, digest: string): Promise<number | null>;
  /**
   * Adds a layer. `place` moves its file into place, while the file of the digest is locked against removal.
   * @returns false where the registry would exceed `sizeMax` bytes, and nothing is added
   */
  addBlob(
    registryId: string,
    blob: { digest: string; size: number; sizeMax: number; upload: string },
    place: () => Promise<void>,
  ): Promise<boolean>;
  deleteBlob(registryId: string, digest: string): Promise<'deleted' | 'in_use' | 'unknown'>;
  /** Runs `remove` where no registry has a row of the digest, while none can be added. */
  ifUnused(digest: string, remove: () => Promise<void>): Promise<void>;

  startUpload(registryId: string, repository: string): Promise<string>;
  hasUpload(registryId: string, repository: string, upload: string): Promise<boolean>;
  endUpload(upload: string): Promise<void>;

  /** @returns digests in the manifest that the registry lacks; empty when it was stored */
  putManifest(registryId: string, manifest: ManifestInput, subject: string | null): Promise<string[]>;
  /** Stores a manifest of an external server, with its layers. @param sizes by digest, in bytes */
  adoptManifest(
    registryId: string,
    manifest: ManifestInput,
    sizes: ReadonlyMap<string, number>,
    subject: string | null,
  ): Promise<void>;
  allTags(registryId: string): Promise<{ repository: string; tag: string; digest: string }[]>;
  /** Untagged manifests that no index contains. */
  untaggedManifests(registryId: string): Promise<{ repository: string; digest: string }[]>;
  /** @param reference a tag or a digest */
  manifest(registryId: string, repository: string, reference: string): Promise<StoredManifest | null>;
  /** @returns false for a missing manifest */
  deleteManifest(registryId: string, repository: string, digest: string, subject: string | null): Promise<boolean>;
  /** @returns false for a missing tag */
  deleteTag(registryId: string, repository: string, tag: string, subject: string | null): Promise<boolean>;
  /** In byte order, after `last`; null where the repository is empty. */
  tags(registryId: string, repository: string, last: string, limit: number): Promise<string[] | null>;
  referrers(registryId: string, repository: string, digest: string, artifactType: string | null): Promise<Referrer[]>;
}

/** Access granted by a token: `acme/shop/web` of type `repository`, or `catalog` of type `registry`. */
export interface RegistryAccess {
  type: 'repository' | 'registry';
  name: string;
  actions: readonly (RegistryAction | '*')[];
}

export type Verdict =
  /** `subject` identifies the account for the activity. */
  | { state: 'allowed'; subject: string }
  /** The token is missing, invalid or expired, or lacks the access. */
  | { state: 'unauthorized'; isKnown: boolean }
  | { state: 'denied' };

/** The token service of a registry (distribution.github.io/distribution/spec/auth/token). */
export interface RegistryTokens {
  /** @param wanted requested scopes: `repository:acme/shop:pull,push`. @returns null for wrong credentials */
  issue(
    credentials: { username: string; password: string },
    wanted: readonly string[],
    address: string,
  ): Promise<{ token: string; expires_in: number; issued_at: string } | 'rate_limited' | null>;
  /** A token of the platform itself. */
  issueOwn(access: readonly RegistryAccess[]): string;
  /** Credentials of the platform that get tokens to pull from these registries. */
  issueLogin(registries: readonly string[]): { username: string; password: string };
  /** Credentials of the platform that get tokens to pull from one repository, for so many seconds. */
  issuePullLogin(repository: string, seconds: number): { username: string; password: string };
  /** How long tokens of others are good. */
  readonly lifetimeSeconds: number;
  /** Records the use of a robot account. */
  recordUse(subject: string): void;
  verify(token: string | null, name: RepositoryName | null, action: RegistryAction): Promise<Verdict>;
}
