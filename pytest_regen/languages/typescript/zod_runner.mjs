// What loads and dumps JSON in the child, by zod. It compiles the store and asks its schemas.
// Standard input holds the work as one JSON object; answers go to the pipe that REGEN_REPORT_FD
// names, each on a line that begins with a secret word.
import { spawnSync } from "node:child_process";
import { readFileSync, symlinkSync, writeSync } from "node:fs";

const { parse, stringify } = JSON;
const work = parse(readFileSync(0, "utf8"));
const descriptor = Number(process.env.REGEN_REPORT_FD);
delete process.env.REGEN_REPORT_FD;
const MOST = 300;

function send(frame) {
  const bytes = Buffer.from(`${work.word} ${stringify(frame)}\n`, "utf8");
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(descriptor, bytes, at);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error; // The pipe is full: the parent reads on.
    }
  }
}

function reply(schema, text) {
  try {
    const found = schema.safeParse(parse(text));
    if (found.success) return [[stringify(found.data)], null, []];
    const [first] = found.error.issues;
    return [[], String(first.message).slice(0, MOST), first.path];
  } catch (error) {
    return [[], String(error).slice(0, MOST), []];
  }
}

const [program, ...options] = work.compiler;
const compiled = spawnSync(program, options, { encoding: "utf8" });
if (compiled.error || /\berror TS/.test(compiled.stdout)) {
  send({ raised: compiled.error ? String(compiled.error) : compiled.stdout });
  process.exit(0);
}
symlinkSync(work.packages, "node_modules");
let store;
try {
  store = await import(new URL("out/store.js", `file://${process.cwd()}/`));
} catch (error) {
  send({ raised: String(error?.stack ?? error).slice(0, 4000) });
  process.exit(0);
}
send({ loaded: true });
for (const question of work.questions) {
  try {
    const schema = store[question.type];
    send({ replies: question.instances.map((text) => reply(schema, text)) });
  } catch (error) {
    send({ replies: null, raised: String(error?.stack ?? error).slice(0, 4000) });
  }
}
process.exit(0);
