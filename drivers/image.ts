// Images, pulled from a registry with the OCI Distribution API. A pulled image becomes a directory that the runtime
// uses as the root of units.
import type { PulledImage } from '../core/protocols/image_settings';
import type { DriverContext } from '../core/driver';
import type { UserRange } from './image/owners';

export type { PulledImage, UserRange };

/** How the registry of an image is reached. */
export interface ImageAccess {
  credentials: { username: string; password: string } | null;
  /** The registry of this installation, which is accessed directly: no address check, and a token of the platform. */
  local: { url: string; token: string } | null;
}

export interface PullRequest {
  reference: string;
  access: ImageAccess;
  /** Where unpacked layers are kept, shared by the images of one application. */
  layers: string;
  /** The root that is made. It must not be there. */
  directory: string;
  /** Owners of the image's files; null: the runtime chowns all of them to one user. */
  range: UserRange | null;
  /** Called with lines for the log of the deployment. */
  tell(line: string): Promise<void>;
}

type LoadRequest = Omit<PullRequest, 'reference' | 'access'> & { layout: string };

/** An image that a build has left in a directory, and where it goes. */
export interface PushRequest {
  layout: string;
  /** `acme/shop/web` of the registry of this installation. */
  repository: string;
  tag: string;
  access: { url: string; token: string };
}

export interface ImageDriver {
  /** The digest that a reference leads to now. @throws ImageError, DriverError transient */
  resolve(reference: string, access: ImageAccess, ctx: DriverContext): Promise<string>;
  /**
   * Pulls and unpacks an image. May be repeated after a crash. @throws ImageError, DriverError transient where the
   * registry gave no answer
   */
  pull(request: PullRequest, ctx: DriverContext): Promise<PulledImage>;
  /** Unpacks an image that a build has left in a directory. @throws ImageError */
  load(request: LoadRequest, ctx: DriverContext): Promise<PulledImage>;
  /** Puts an image that a build has left into a registry. @throws ImageError, DriverError transient */
  push(request: PushRequest, ctx: DriverContext): Promise<void>;
  /** Removes unpacked layers that are none of `kept`, and what interrupted pulls have left. */
  pruneLayers(layers: string, kept: ReadonlySet<string>): Promise<void>;
}

/** Why: `missing` no such image or none for this platform; `refused` no right; `broken` it cannot be used. */
type ImageFailure = 'missing' | 'refused' | 'broken';

/** The message is a sentence for users: it names no path of the host and no credential. */
export class ImageError extends Error {
  override readonly name = 'ImageError';

  constructor(
    readonly failure: ImageFailure,
    message: string,
  ) {
    super(message);
  }
}
