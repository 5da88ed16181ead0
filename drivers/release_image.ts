// Releases as images in the platform's registry, to run them elsewhere: the files of a release on a base image, with
// the programs that they were built with. A cluster pulls them with a token for one repository.
import type { DriverContext } from '../core/driver';
import type { ImageAccess } from './image';
import type { Tool } from './toolchain';

/** Where an image goes. */
export interface ReleasePlace {
  /** Below the registry of the platform: the id of the application. */
  repository: string;
  /** Keeps the image from the garbage collection of the registry. */
  tag: string;
  /** Called with the digest before the image is pushed, so that a crash leaves no unrecorded image. */
  announce(image: PublishedImage): Promise<void>;
}

export interface PublishRequest extends ReleasePlace {
  /** Directory of the files, which must not change meanwhile. */
  directory: string;
  /** Below `directory`, where commands start. */
  root_directory: string;
  /** Commands by process type. */
  processes: Record<string, string>;
  /** Variables that the platform gives to every build of the kind (NODE_ENV). Never one of the application. */
  env: Record<string, string>;
  tools: readonly Tool[];
  /** `org.opencontainers.image.*`. */
  labels: Record<string, string>;
}

/** An image that there is already: in a registry, or in the directory where a build of a Dockerfile left it. */
export interface CopyRequest extends ReleasePlace {
  from: { reference: string; access: ImageAccess } | { layout: string };
  /** Digest of the manifest. */
  digest: string;
}

export interface PublishedImage {
  /** Including the name of the registry: `apps/app_…`. */
  repository: string;
  digest: string;
}

export interface ReleaseImageDriver {
  /**
   * Makes the image of a release and puts it into the registry. May be repeated: the same files have the same digest,
   * and what the registry has is not sent. @throws ReleaseImageError, DriverError transient
   */
  publish(request: PublishRequest, ctx: DriverContext): Promise<PublishedImage>;
  /** Copies an image unchanged to the registry. @throws ReleaseImageError, DriverError transient */
  copy(request: CopyRequest, ctx: DriverContext): Promise<PublishedImage>;
  /** Absent is success. @throws DriverError transient */
  remove(image: PublishedImage, ctx: DriverContext): Promise<void>;
}
