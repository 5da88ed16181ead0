// Programs that are copied to where they run, since they outlive the version of the platform that started them. They
// are JavaScript that the compiler checks, and stand beside this file in the sources and in dist/.
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** A file by its name and its text. */
interface ProgramFile {
  name: string;
  text: string;
}

export const gateProgram = readProgram(__dirname, 'gate.js');
/** Programs find it beside themselves. */
export const connectInside = readProgram(__dirname, 'connect_inside.js');
export const publishedProgram = [readProgram(__dirname, 'published_program.js'), connectInside] as const;

export function readProgram(directory: string, name: string): ProgramFile {
  return { name, text: readFileSync(path.join(directory, name), 'utf8') };
}
