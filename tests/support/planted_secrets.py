"""Credentials of more than forty kinds, none of them real, to be planted and looked for."""

__all__ = ["HEX", "KINDS", "PLANTED"]

HEX = "0123456789abcdef" * 5
MIXED = "a1B2c3D4e5F6g7H8i9J0" * 4
UPPER = "A1B2C3D4E5F6G7H8I9J0" * 4

PLANTED = {
    "anthropic": "sk-ant-api03-" + MIXED[:40],
    "bearer": "Bearer abcdefghijklmnop.qrstuv",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "github": "ghp_" + "x" * 36,
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
