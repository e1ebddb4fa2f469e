"""Credentials of more than forty kinds, none of them real, to be planted and looked for."""

import base64
import re

__all__ = [
    "DOCUMENTED",
    "HEX",
    "IN_CONTEXT",
    "KINDS",
    "MIXED",
    "NAMED",
    "NEWER",
    "PLANTED",
    "UNLISTED",
    "UPPER",
    "core",
]

HEX = "0123456789abcdef" * 5
MIXED = "a1B2c3D4e5F6g7H8i9J0" * 4
UPPER = "A1B2C3D4E5F6G7H8I9J0" * 4

PLANTED = {
    "anthropic": "sk-ant-api03-" + MIXED[:40],
    "bearer": "Bearer abcdefghijklmnop.qrstuv",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "github": "ghp_" + MIXED[:36],
    "private": "-----BEGIN PRIVATE KEY-----\nMIIB\nOg==\n-----END PRIVATE KEY-----",
}
"""Of each sort of place a credential can stand in, one; these go through the SDK."""

KINDS = {
    **PLANTED,
    "openai": "sk-proj-" + MIXED[:48],
    "openrouter": "sk-or-v1-" + HEX[:64],
    "basic": "Basic " + "dXNlcjpwYXNzd29yZDEyMzQ1Ng==",
    "github-app": "ghs_" + MIXED[:36],
    "github-fine": "github_pat_" + MIXED[:60],
    "gitlab": "glpat-" + MIXED[:20],
    "slack": "xoxb-123456789012-" + MIXED[:24],
    "slack-webhook": "https://hooks.slack.com/services/T0000AAAA/B0000BBBB/" + MIXED[:24],
    "google": "AIza" + MIXED[:35],
    "google-oauth": "ya29." + MIXED[:60],
    "stripe": "sk_" + "live_" + MIXED[:24],
    "npm": "npm_" + MIXED[:36],
    "pypi": "pypi-" + MIXED[:60],
    "huggingface": "hf_" + MIXED[:34],
    "jwt": f"eyJ{MIXED[:20]}.eyJ{MIXED[:40]}.{MIXED[:30]}",
    "groq": "gsk_" + MIXED[:52],
    "xai": "xai-" + MIXED[:60],
    "perplexity": "pplx-" + MIXED[:48],
    "replicate": "r8_" + MIXED[:37],
    "langsmith": f"lsv2_pt_{HEX[:32]}_{HEX[:10]}",
    "sendgrid": f"SG.{MIXED[:22]}.{MIXED[:43]}",
    "twilio": "SK" + HEX[:32],
    "mailgun": "key-" + HEX[:32],
    "digitalocean": "dop_v1_" + HEX[:64],
    "databricks": "dapi" + HEX[:32],
    "shopify": "shpat_" + HEX[:32],
    "square": "sq0atp-" + MIXED[:22],
    "vault": "hvs." + MIXED[:24],
    "linear": "lin_api_" + MIXED[:40],
    "notion": "ntn_" + MIXED[:46],
    "docker": "dckr_pat_" + MIXED[:27],
    "atlassian": "ATATT3" + MIXED[:60],
    "postman": f"PMAK-{HEX[:24]}-{HEX[:34]}",
    "newrelic": "NRAK-" + UPPER[:27],
    "grafana": "glsa_" + MIXED[:32] + "_a1b2c3d4",
    "sentry": "sntrys_" + MIXED[:60],
    "supabase": "sbp_" + HEX[:40],
    "airtable": f"pat{MIXED[:14]}.{HEX[:64]}",
    "age": "AGE-SECRET-KEY-1" + UPPER[:58],
    "planetscale": "pscale_tkn_" + MIXED[:43],
    "pulumi": "pul-" + HEX[:40],
    "rubygems": "rubygems_" + HEX[:48],
    "doppler": "dp.pt." + MIXED[:43],
    "figma": "figd_" + MIXED[:40],
    "easypost": "EZAK" + MIXED[:54],
    "dropbox": "sl." + MIXED[:70],
    "telegram": "123456789:AA" + MIXED[:33],
    "discord": "https://discord.com/api/webhooks/123456789012345678/" + MIXED[:60],
    "url-password": "postgres://admin:" + "hunter2hunter@db.example/x",
    "azure": "AccountKey=" + MIXED[:64] + "==",
    "assigned": "password=" + "q7Rt9ZxP2mKw4LsV8n",
    "assigned-json": '{"client_secret": "' + 'q7Rt9ZxP2mKw4LsV8n"}',
    "assigned-yaml": "api_key: " + "9f8e7d6c5b4a39281706",
}
"""More than forty kinds. Put together from pieces, so that scanners of this file find nothing."""

NEWER = {
    "bedrock": "ABSK" + base64.b64encode(f"BedrockAPIKey-{MIXED[:40]}".encode()).decode(),
    "bedrock-short": "bedrock-api-key-" + base64.b64encode(f"bedrock.{MIXED}".encode()).decode(),
    "google-client": "GOCSPX-" + MIXED[:28],
    "gemini": "AQ.Ab8" + MIXED[:40],
    "nvidia": "nvapi-" + MIXED[:60],
    "pinecone": "pcsk_" + MIXED[:60],
    "tavily": "tvly-" + MIXED[:32],
    "elevenlabs": "sk_" + HEX[:48],
    "fireworks": "fw_" + MIXED[:24],
    "voyage": "pa-" + MIXED[:43],
    "terraform": f"{MIXED[:14]}.atlasv1.{MIXED[:60]}",
    "mailchimp": HEX[:32] + "-us12",
    "putty": f"PuTTY-User-Key-File-3: x\nPrivate-Lines: 2\n{MIXED[:64]}\n{MIXED[:40]}",
    "redis": "redis://:" + "hunter2hunter@db.example:6379",
    "user of an address": f"https://{MIXED[:24]}@git.example/x.git",
}
"""Kinds that came later."""

NAMED = {
    "sts": f"<SecretAccessKey>{MIXED[:40]}</SecretAccessKey>",
    "pass": "DB_PASS=" + MIXED[:18],
    "arrow": f"'api_key' => '{MIXED[:32]}'",
    "walrus": f'apiKey := "{MIXED[:32]}"',
    "typed": f"api_key: str = '{MIXED[:32]}'",
    "function": f'key=os.getenv("K", "{MIXED[:32]}")',
    "markdown": f"**API key**: `{MIXED[:32]}`",
    "prose": f"the api key is {MIXED[:32]}, I think",
    "flag": f"deploy --api-key {MIXED[:32]} --now",
    "scheme": f"Authorization: Token {MIXED[:40]}",
    "netrc": f"machine h login u password {MIXED[:18]}",
    "signs": "password=hG7kL9!qW2$zX4cV8b1N",
}
"""Random values that only a name makes credentials."""

UNLISTED = {
    "Slack app": "xapp-1-A0123456789-1234567890123-" + HEX[:64],
    "webhook": "whsec_" + MIXED[:32],
    "Discord bot": "MTE2NzkyNjk4NDk0Nzc0" + MIXED[:4] + ".GaBcDe." + MIXED[:38],
    "Facebook": "EAA" + MIXED[:60] + "ZB" + MIXED[:60] + "ZD",
    "Mapbox": "sk.eyJ" + MIXED[:60] + "." + MIXED[:22],
    "OpenAI session": "sess-" + MIXED[:40],
    "GitLab runner": "GR1348941" + MIXED[:20],
    "JWE": f"eyJ{MIXED[:30]}..{MIXED[:16]}.{MIXED[:60]}.{MIXED[:22]}",
    "Asana": "1/1200000000000001:" + HEX[:32],
    "Asana, new": "2/1200000000000001/1200000000000002:" + HEX[:32],
    "curl": "curl -s -u deploy:" + "hG7kL9qW2zX4 https://api.example/v1",
    "curl, long": "curl --user=deploy:" + "hG7kL9qW2zX4 https://api.example/v1",
    "Oracle": "jdbc:oracle:thin:scott/" + "hG7kL9qW2zX4@//db.example:1521/orcl",
    "XML attribute": f'<add key="ApiSecret" value="{MIXED[:32]}"/>',
    "XML password": '<property name="db.password" value="' + 'hG7kL9qW2zX4"/>',
    "Laravel": f"APP_KEY=base64:{MIXED[:43]}=",
    "htpasswd": "joe:$apr1$" + "hG7kL9qW$" + MIXED[:22],
    "htpasswd, bcrypt": "joe:$2y$10$" + MIXED[:53],
    "htpasswd, SHA": "joe:{SHA}" + MIXED[:27] + "=",
    "GCP key id": f'{{"private_key_id": "{HEX[:40]}"}}',
    "German": "Mein Passwort: hG7kL9qW2zX4",
    "German, JSON": '{"Kennwort": "hG7kL9qW2zX4"}',
    "French": '{"motDePasse": "hG7kL9qW2zX4"}',
    "connection": "Server=db;User Id=joe;Password=" + "hunter2hG7kL9qW;Timeout=3",
}
"""Kinds that another round of planting found on the disk."""

DOCUMENTED = {
    "AWS session": "IQoJb3JpZ2luX2Vj" + MIXED * 4 + "==",
    "Bedrock": "ABSK" + MIXED[:66] * 2 + "==",
    "Facebook page": "EAACEdEose0cBA" + MIXED * 2,
    "Mercado Pago": f"APP_USR-1234567890123456-070110-{HEX[:32]}-123456789",
    "Adyen": f"AQE{MIXED}==-{MIXED[:43]}=-{MIXED[:16]}",
    "Unkey": "unkey_" + MIXED[:22],
    "Django hash": f"pbkdf2_sha256$600000${MIXED[:22]}${MIXED[:43]}=",
    "Werkzeug hash": f"scrypt:32768:8:1${MIXED[:16]}${HEX}",
    "XML, short": '<add key="ApiSecret" value="' + 'hG7kL9qW2zX4"/>',
    "XML, letters": '<add key="ApiSecret" value="' + 'aTtTCjUFcJgfrZIxgTsDypMi"/>',
    "Terraform": f'variable "api_token" {{\n  type = string\n  default = "{MIXED[:32]}"\n}}',
    "lower case": "Mein Passwort: " + "7kq9wzx4hgl2",
    "letters": "export API_KEY=" + "aTtTCjUFcJgfrZIxgTsDypMi",
}
"""Kinds whose form their vendors document, or that a name in another format tells."""

IN_CONTEXT = {
    "CSV": f"name,api_key,day\njoe,{MIXED[:32]},7\n",
    "CSV, quoted": f'"id";"API Token";"n"\n"7";"{MIXED[:32]}";"x"\n',
    "Spanish": '{"contraseña": "hG7kL9qW2zX4"}',
    "Russian": "пароль = hG7kL9qW2zX4",
    "Chinese": '{"密码": "hG7kL9qW2zX4"}',
    "XML": "<login><user>joe</user><password>hG7kL9qWzXvb</password></login>",
    "XML, letters": "<server><password>abracadabras</password></server>",
    "SOAP": '<wsse:Password Type="x#PasswordText">hG7kL9qW2zX4</wsse:Password>',
    "CDATA": f"<cfg><apiKey><![CDATA[{MIXED[:32]}]]></apiKey></cfg>",
    "properties in XML": f"<dict><key>apiToken</key><string>{MIXED[:32]}</string></dict>",
    "HTML": '<input type="password" name="pw" value="' + 'hG7kL9qW2zX4">',
    "YAML, quoted": "smtp:\n  pass: 'hG7kLqWzXvbN'\n",
    "YAML, block": f"api_key: |\n  {MIXED[:32]}\nother: 1\n",
    "YAML, folded": f"token: >-\n  {MIXED[:32]}\n",
    "Kubernetes": "env:\n- name: DB_PASSWORD\n  value: hG7kL9qW2zX4\n",
    "Compose": "environment:\n  - POSTGRES_PASSWORD=hgkl9qwzxvbn\n",
    "shell": "PGPASSWORD=" + "hGtkLwqWzyXvbNmK psql -h db",
    "Windows": "set ADMIN_PW=" + "hG7kLqWzXvbN\r\n",
    "setx": f'setx AZURE_OPENAI_KEY "{HEX[:32]}"',
    "fish": f"set -x TWILIO_AUTH_TOKEN {HEX[:32]}",
    "Dockerfile": f"FROM x\nENV WANDB_API_KEY {HEX[:40]}\n",
    "Java": 'ds.setPassword("' + 'hG7kLqWzXvbN");',
    "INI": "[db]\npassword = hG7kLqWzXvbN\n",
    "Ansible": "ansible_become_pass: hG7kLqWzXvbN",
    "Django": "SECRET_KEY = 'django-insecure-" + "l*$@t-r14jsv1h4^ffbqxr^%_am3ffnj5y668l92yc#@@qd'",
    "signs": "SECRET_KEY=jK8=(yXsTG1g8*TE47WQ@=xa=heTR5rg24Y5pkE\n",
    ".netrc, short": "machine api.example login joe password " + "hgklqwzxvbnm\n",
    ".pgpass": "db.example:5432:app:joe:" + "hgklqwzxvbnm\n",
    "flag of one word": f"tool login --token {MIXED[:32]} --region eu",
    "passphrase": "gpg --batch --passphrase " + MIXED[:20] + " -d x.gpg",
    "mysql": "mysql -uroot -p" + "hgklqwzxvbnm -h db app",
    "sshpass": "sshpass -p '" + "hgklqwzxvbnm' ssh joe@db",
    "docker login": "docker login -u joe -p " + "hgklqwzxvbnm registry.example",
    "redis-cli": "redis-cli -h db -a " + "hgklqwzxvbnm ping",
    "Windows user": "net user joe " + "hgklqwzxvbnm /add",
    "user of Apache": "htpasswd -bc .htpasswd joe " + "hgklqwzxvbnm",
    "XML-RPC": "<member><name>password</name><value><string>hG7kL9qW2zX4</string></value></member>",
    "HTML, table": f"<tr><th>API token</th><td>{MIXED[:32]}</td></tr>",
    "HTML, list": "<dt>Password</dt><dd>" + "hG7kL9qW2zX4</dd>",
    "HTML, code": f"<p>Your API key: <code>{MIXED[:32]}</code></p>",
    "Rails": "production:\n  secret_key_base: " + HEX[:64],
    "flag of a password": "mongosh -u joe --password " + "hG7kLqWzXvbN db",
    "default of a variable": f"os.environ.setdefault('API_TOKEN', '{MIXED[:32]}')",
    "PHP": "define('DB_PASSWORD', '" + "hG7kL9qW2zX4');",
    "SQL": "CREATE USER joe WITH PASSWORD '" + "hgklqwzxvbnm';",
    "MySQL": "CREATE USER joe IDENTIFIED BY '" + "hgklqwzxvbnm';",
    "AWS CLI": "aws configure set aws_secret_access_key " + MIXED[:40],
    "nginx": f"proxy_set_header X-Api-Key {MIXED[:40]};",
    "file of cookies": f".x.org\tTRUE\t/\tTRUE\t1790000000\tauth_token\t{HEX[:40]}",
    "cookie of a log": f"Set-Cookie: sid={MIXED[:32]}; Path=/; HttpOnly",
    "no digits": '{"api_key": "aTtTCjUFcJgfrZIxgTsDypMi"}',
    "masked in CI": "::add-mask::" + "hgklqwzxvbnm",
}
"""What only its table, an element, a command, or a name in another language makes a credential."""


def core(secret: str) -> str:
    """Return what of a secret must not be seen: its last long word."""
    words = [word for word in re.findall(r"[A-Za-z0-9]+", secret) if len(word) > 11]
    found = [word for word in words if word not in {"SecretAccessKey", "Authorization"}]
    return found[-1] if found else "MIIB"
