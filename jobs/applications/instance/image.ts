import { commandLineOf, type ImageHealthCheck, type ImageSettings } from '../../../core/protocols/image_settings';
import type { UnitImage } from '../../../drivers/runtime';
import type { ReleaseSettings } from '../../../models/applications/release_settings';
import { WEB, type InstanceRow } from './row';

/**
 * How a unit runs a command in an image. The command of the image itself is executed as the image has it, any other by
 * the shell of the image. undefined where there is no image.
 */
export function unitImageOf({ image }: { image?: ImageSettings | null }, command: string): UnitImage | undefined {
  if (!image) return undefined;
  const { env, working_directory, user, first_user_id } = image;
  const command_line = command === commandLineOf(image) ? image.command : null;
  return { command: command_line, env, working_directory, user, ...(first_user_id !== undefined && { first_user_id }) };
}

type PortSettings = Pick<ReleaseSettings, 'image' | 'chosen_port'>;

/** The port of EXPOSE or of the setting `http.port`, which count for the process type `web` only. null: none is set. */
export function exposedPortOf(
  { process_type }: Pick<InstanceRow, 'process_type'>,
  { image, chosen_port }: PortSettings,
): number | null {
  return process_type === WEB ? ((image ? image.exposed_port : chosen_port) ?? null) : null;
}

/** Where an exposed port does not count: what to do about it. */
export function sharedPortAdvice(exposed: number, { image }: PortSettings): string {
  const cause = image ? `The image exposes ${exposed}` : `\`http.port\` is ${exposed}`;
  return (
    `${cause}, but on this host applications share a network: the program must listen on the port that the PORT ` +
    'variable names.'
  );
}

/** HEALTHCHECK of the image, where it counts: for the process type `web`, and without a check of the application. */
export function imageHealthCheckOf(
  { process_type }: Pick<InstanceRow, 'process_type'>,
  { image }: { image?: ImageSettings },
): ImageHealthCheck | null {
  const check = image?.health_check;
  return process_type === WEB && typeof check === 'object' ? check : null;
}
