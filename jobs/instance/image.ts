import { commandLineOf, type ImageSettings } from '../../core/image_settings';
import type { UnitImage } from '../../drivers/runtime';

/**
 * How a unit runs a command in an image. The command of the image itself is executed as the image has it, any other by
 * the shell of the image. undefined where there is no image.
 */
export function unitImageOf({ image }: { image?: ImageSettings | null }, command: string): UnitImage | undefined {
  if (!image) return undefined;
  const { env, working_directory, user } = image;
  return { command: command === commandLineOf(image) ? image.command : null, env, working_directory, user };
}
