// Servers of container registries.
import type { DriverContext } from '../../core/driver';
import type { RegistryAccess } from '../../core/protocols/registry_content';

export interface RegistryDriver {
  readonly name: string;
  /** Where the server listens. */
  readonly port: number;
  /** How this host itself reads a repository: `acme/shop/web`. */
  pullAccess(repository: string): Promise<{ url: string; token: string }>;
  /** How this host itself writes to a repository. */
  pushAccess(repository: string): Promise<{ url: string; token: string }>;
  /** How this host itself does what these rights allow. */
  ownAccess(rights: readonly RegistryAccess[]): { url: string; token: string };
  /** With which a program elsewhere reads one repository, and nothing else, for so long. */
  pullLogin(repository: string, seconds: number): { username: string; password: string };
  /** With which a program reads all images of these registries for an hour. */
  loginFor(registries: readonly string[]): { username: string; password: string };
  /** Whether clients on this host reach it without TLS. */
  readonly isPlain: boolean;
  /** Removes files of layers that no registry has any more. Digests without a file are passed over. */
  removeUnused(digests: readonly string[], ctx: DriverContext): Promise<void>;
  /** Removes what interrupted uploads have left, where they are older than a day. */
  removeOldUploads(ctx: DriverContext): Promise<void>;
  /** Digests of all files, in batches. */
  listBlobs(ctx: DriverContext): AsyncIterable<string[]>;
  /** Of a server that is not this process: rows follow it. null: the rows are the truth. */
  readonly mirror: RegistryMirror | null;
  close(): Promise<void>;
}

/** A registry server of its own, which keeps manifests and tags itself. */
export interface RegistryMirror {
  /** Tokens that were issued before are good for so long. */
  readonly tokenSeconds: number;
  /** Brings the rows of a registry up to what the server has. */
  compare(registry: string, ctx: DriverContext): Promise<void>;
  /** Removes manifests and layers from a repository: `acme/shop/web`. Absent is success. */
  remove(name: string, content: { manifests: string[]; blobs: string[] }, ctx: DriverContext): Promise<void>;
  /** Removes every image of a registry that has a tag. */
  removeAll(registry: string, ctx: DriverContext): Promise<void>;
}
