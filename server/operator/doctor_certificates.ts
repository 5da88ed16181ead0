// Certificates of the platform, and the authority that they come from.
import type { Config } from '../../core/config';
import { driverContext } from '../../core/driver';
import { openCertificates } from '../../drivers/certificates/open';
import { certificateFigures, expiryWarning } from '../../models/domains/certificate/expiry_warnings';
import { isMade, withDatabase } from './doctor_database';
import type { Finding } from './finding';

const WITHIN_MS = 10_000;

/** Nothing where no authority is set. */
export async function certificates(config: Config): Promise<Finding[]> {
  const { acmeDirectory: directory, acmeEmail: email, acmeCaFile: caFile } = config;
  if (directory === null) return [];
  const found = [await authority(openCertificates({ directory, email, caFile }), directory)];
  return isMade(config) ? [...found, ...(await withDatabase(config, stored))] : found;
}

async function authority(driver: ReturnType<typeof openCertificates>, directory: string): Promise<Finding> {
  const check = 'certificate authority';
  try {
    await driver.probe(driverContext(WITHIN_MS));
    const advice = driver.clockAdvice();
    if (advice) return { check, status: 'warning', detail: advice };
    return { check, status: 'ok', detail: `${directory} answers, and its clock agrees with that of this machine` };
  } catch (error) {
    return { check, status: 'warning', detail: `${directory}: ${(error as Error).message}` };
  }
}

async function stored(...[database]: Parameters<Parameters<typeof withDatabase>[1]>): Promise<Finding[]> {
  const check = 'certificates';
  const { own, counts } = await certificateFigures(database);
  const warned = own.filter(({ needs_warning }) => needs_warning);
  const others = (state: string): number =>
    counts.filter((one) => one.kind !== 'platform' && one.state === state).reduce((sum, { count }) => sum + count, 0);
  const findings = warned.map((row): Finding => ({ check, status: 'warning', detail: expiryWarning(row) }));
  const expiring = others('expiring');
  if (expiring) {
    const detail = `${expiring} certificates of domains and applications end soon and were not renewed`;
    findings.push({ check, status: 'warning', detail: `${detail}: their field certificate.error says why` });
  }
  if (findings.length) return findings;
  const served = own.filter(({ seconds }) => seconds !== null).map(({ id }) => id);
  const waiting = others('waiting') ? `, ${others('waiting')} more wait for a limit of the authority` : '';
  const detail =
    `valid for ${served.join(', ') || 'no name of the platform itself'}, and for ${others('good')} names of ` +
    `projects${waiting}`;
  return [{ check, status: 'ok', detail }];
}
