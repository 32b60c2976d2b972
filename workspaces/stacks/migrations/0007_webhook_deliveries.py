"""Deliveries of webhooks that led to a sync."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('stacks', '0006_source_by'),
    ]

    operations = [
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('mark', models.CharField(max_length=64)),
                ('received_at', models.DateTimeField()),
                ('stack', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='stacks.stack')),
                ('sync', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='stacks.sync')),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
                'ordering': ['-received_at'],
                'constraints': [models.UniqueConstraint(fields=('stack', 'mark'), name='delivery_once_per_stack')],
            },
        ),
    ]
