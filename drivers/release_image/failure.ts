import { DriverError } from '../../core/driver';

/** Why a release has no image. The message is a sentence for users. */
export class ReleaseImageError extends DriverError {
  constructor(message: string) {
    super('invalid', message);
  }
}
